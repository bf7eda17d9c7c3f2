"""Beyond one machine: tables whose entries lie with the workers of a Dask cluster.

The chains, their factors and all that is drawn once a sweep stay where the fit was called; workers hold
parts of the entries, by row and by column, and draw the rows of their parts with the kernels of one
machine. A row's draw depends on its number alone, so that neither the parts, nor the workers, nor their
deaths change a bit.
"""
