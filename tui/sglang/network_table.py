"""The part of the failure table about ports, ranks, nodes and NCCL."""

from __future__ import annotations

from tui.sglang.failure_row import CAUSE, FAINT, SECONDHAND, SYMPTOM, Place, Row, row
from tui.sglang.model import FailureKind as K

_E, _S, _T = Place.ENDS, Place.START, Place.TAIL

_PORT = "The port is taken by another process."
_PEER = "Another rank or node closed the connection or never answered; its own log holds the reason."
_NCCL = "The GPUs could not talk to each other (NCCL)."

NETWORK: tuple[Row, ...] = (
    # --- ports
    row(r"(?i)address already in use|EADDRINUSE|\[Errno 98\]", K.PORT_IN_USE, _PORT, _E | _T),
    row(r"Failed to bind to address", K.PORT_IN_USE, _PORT),
    row(
        r"is not available in \d+ seconds|(?i:port \S+ is (?:already )?(?:in use|taken))|Port is already in use",
        K.PORT_IN_USE,
        _PORT,
    ),
    row(r"^ERROR: +\[Errno 98\]", K.PORT_IN_USE, _PORT, _S, CAUSE, True),
    row(
        r"^ERROR: +\[Errno \d+\] error while attempting to bind",
        K.OTHER,
        "The server cannot listen on its address.",
        _S,
        CAUSE,
        True,
    ),
    row(
        r"^(?:Port is already in use\. dist_init_port|engine_info_bootstrap_port \d+ is already in use)",
        K.PORT_IN_USE,
        _PORT,
        _S,
        CAUSE - 8,  # the exception after it names who has the port
    ),
    # --- other ranks and nodes (before NCCL: its errors wrap these)
    row(
        r"(?i)gloo.{0,160}(?:closed by peer|timed out|connectFullMesh|refused|reset|no route|no error|"
        r"unreachable)|connectFullMesh|gloo/transport",
        K.MULTI_NODE,
        _PEER,
        weight=SECONDHAND,
    ),
    row(
        r"(?i)TCPStore|DistStoreError|DistNetworkError|client socket has (?:failed|timed out)|waiting for clients|"
        r"remote process (?:exited|has exited)|ncclRemoteError|connection closed by (?:remote )?peer|"
        r"^\S*EngineDead|rendezvous|"
        r"gaierror|No route to host|ifa != nullptr|Unable to find address for|other ranks that didn't finish|"
        r"Failed to receive worker ports",
        K.MULTI_NODE,
        _PEER,
        weight=SECONDHAND,
    ),
    row(
        r"^\[rank\d+\]:\[[EWF]\d+ .{0,60}ProcessGroup\w+\.cpp:\d+\].{0,120}(?:TCPStore|connectFullMesh|"
        r"closed by peer)",
        K.MULTI_NODE,
        _PEER,
        _S,
        FAINT,
        True,
    ),
    row(
        r"^\[rank\d+\]:\[[EWF]\d+ .{0,60}TCPStore\.cpp:\d+\].{0,40}(?:recvValue|sendBytes|recvVector) failed",
        K.MULTI_NODE,
        _PEER,
        _S,
        FAINT,
    ),
    row(r"^ConnectionRefusedError\b", K.OTHER, "A service that the server needs refused the connection."),
    row(
        r"(?i)nccl (?:error|internal|communicator)|nccl\w*Error|DistBackendError|\brccl\b|hccl|"
        r"Watchdog caught collective operation timeout",
        K.NCCL,
        _NCCL,
        weight=SECONDHAND,
    ),
    row(
        r"^\[rank\d+\]:\[F.{0,160}watchdog|^\[rank\d+\]:\[E.{0,160}watchdog thread terminated with exception",
        K.NCCL,
        _NCCL,
        _S,
        SYMPTOM + 3,
        True,
    ),
    row(
        r"^\[rank\d+\]:\[E.{0,120}(?:Watchdog caught collective operation timeout|watchdog got stuck|"
        r"NCCL (?:error|watchdog))",
        K.NCCL,
        _NCCL,
        _S,
        SYMPTOM + 3,
    ),
    row(
        r"^terminate called after throwing an instance of 'c10::DistBackendError'", K.NCCL, _NCCL, _S, SYMPTOM + 1, True
    ),
)
