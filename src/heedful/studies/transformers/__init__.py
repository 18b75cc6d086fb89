"""A genuine encoder, fine-tuned: may its attention be shown, and does tying help?"""
