"""How a chat is answered: its parameters, and presets of them. The store and the format know no Qt."""
