"""The program that runs on a host, behind one SSH channel or a pipe.

Standard library only, Python 3.8 or newer. Its sources are sent as one blob and imported from memory (``boot.py``);
nothing is installed. One poll loop, no threads, no asyncio, no subprocess: about 11 MB and next to no CPU.
"""
