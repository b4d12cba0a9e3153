"""The protocol of rounds in one place: fence, seal, roll forward, record (details: lake.fence, lake.seal).

A driver that starts: `holder` (is it gone?) -> `take_fence(after=…)` -> `open_seal` -> `roll_forward` what is
sealed; then work -> `seal` -> `roll_forward`. It holds no state of its own.
"""

from lake.fence import Fence, Holder, check_fence, holder, take_fence
from lake.seal import Seal, open_seal, record, roll_forward, seal

__all__ = [
    "Fence",
    "Holder",
    "Seal",
    "check_fence",
    "holder",
    "open_seal",
    "record",
    "roll_forward",
    "seal",
    "take_fence",
]
