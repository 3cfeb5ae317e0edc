"""The program that runs on a host, behind one SSH channel or a pipe.

Standard library only, Python 3.8 or newer. Its sources are sent as one blob and imported from memory (``boot.py``);
nothing is installed. One poll loop, no threads, no asyncio, no subprocess: 12 to 14 MB and next to no CPU. For that,
modules that cost much are not imported: ``typing`` (only checkers read its names), ``socket``, ``threading``, ``glob``.
"""
