"""Drawings: pure functions of states and a size that give rows of inked text. No Textual, no clock."""
