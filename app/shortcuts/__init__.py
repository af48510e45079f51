"""The keys of the program: every command with its own, which the user may change, and the overlay of them."""
