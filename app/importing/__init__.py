"""Chats from files: what this program exports, and what ChatGPT exports."""
