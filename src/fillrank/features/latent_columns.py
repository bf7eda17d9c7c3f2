"""Features of the latent columns of a table, of which a category has several."""

import numpy as np

from fillrank.features.blocks import Block, Blocks, PatternCode
from fillrank.table.latent import Coding


def latent_blocks(blocks: Blocks, coding: Coding) -> Blocks:
    """The blocks of a table for its latent table.

    Latent columns have the features of their column. The pattern of a row is that of the columns of the
    table: of the first latent column of each.
    """
    columns = tuple(
        block._replace(values=block.values[coding.column_of]) for block in blocks.columns
    )
    return Blocks(tuple(_latent_rows(block, coding) for block in blocks.rows), columns)


def _latent_rows(block: Block, coding: Coding) -> Block:
    code = block.code
    if not isinstance(code, PatternCode):
        return block
    first = coding.first_latent[:-1]
    means = np.zeros(coding.n_latent)
    directions = np.zeros((coding.n_latent, code.directions.shape[1]), code.directions.dtype)
    means[first], directions[first] = code.means, code.directions
    return block._replace(code=PatternCode(means, directions))
