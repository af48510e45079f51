"""The desktop program: Qt only here, torch never."""
