"""Tables whose entries are on the workers of a Dask cluster.

The chains, their factors and all that is drawn once per sweep stay with the client. Workers have
partitions of the entries, by row and by column, and draw the rows of their partitions with the kernels
of one machine. The draws of a row depend only on its number, so the bits do not depend on partitions,
on the number of workers, or on whether workers die.
"""
