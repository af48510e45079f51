"""The program's log: the file, its last lines in memory, and the window that shows them."""
