"""The log pane: a window on a spool file, filters, search, and the widget."""
