"""Dialogs and full-screen views over the board."""
