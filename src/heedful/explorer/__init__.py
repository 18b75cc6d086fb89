"""The live page: any text typed in, explained and edited while one looks."""
