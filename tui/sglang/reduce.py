"""``reduce(state, event) -> state`` and what depends on the time, ``marks(state, now)``. Both pure."""
