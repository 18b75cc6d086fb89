"""Staying true to your word: can attention become explanation? (Tutek & Snajder 2020)"""
