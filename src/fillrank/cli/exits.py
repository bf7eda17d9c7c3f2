"""How the command line ends: the numbers that shells and programs see."""

FAILED = 2
INTERRUPTED = 130  # 128 + SIGINT, as shells have it
UNREAD = 141  # 128 + SIGPIPE
TERMINATED = 143  # 128 + SIGTERM
