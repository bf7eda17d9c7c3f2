"""A scheduler or worker that ends with the process that started it, however that one ended.

Takes the arguments of ``dask spec``; its standard input is a pipe from the process that started it.
"""

import os
import threading

from distributed.cli.dask_spec import main


def end_with_the_pipe():
    os.read(0, 1)  # nobody writes: it ends when the pipe is closed
    os._exit(1)


if __name__ == "__main__":
    threading.Thread(target=end_with_the_pipe, daemon=True).start()
    main()
