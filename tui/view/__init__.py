"""The dashboard: draws the states of a ``Source`` and sends it Actions."""
