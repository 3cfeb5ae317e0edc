"""What the facts of a ``ServerState`` mean together: its phase, stage and failure. Pure functions of a state.

``phase(state) -> Phase``, ``stage(state) -> Stage | None``, ``failure(state) -> Failure | None``, and
``marks(state, now) -> Marks(stalled, stall_reason, unreachable, stale)`` in ``reduce.py``.
"""
