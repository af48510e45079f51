"""The wizard's pages: each shows the flow's state and sends what the user does."""
