"""Real SGLang on a CPU, driven by ``hcs-tui`` over a real sshd: ``make test-real``. No part of ``make test``."""
