"""One file with everything the user has: made from the running program, and taken back at its next start.

`writing` makes the file, `staging` checks one and unpacks it beside the present data, `swapping` exchanges
the two before anything is opened. Models are not in it: they are large, and can be fetched again.
"""
