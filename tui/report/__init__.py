"""States without a screen: JSON, plain text, event lines, and SVG → PNG."""
