"""One host: the SSH connection, the agent behind it, host keys. asyncssh is imported here only."""
