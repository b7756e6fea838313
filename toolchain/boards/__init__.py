"""Chips and boards: a chip is a file `boards/chips/<name>.toml`, a board a folder `boards/<name>/`
with a `board.toml`."""

from toolchain.boards.board_model import Board as Board
from toolchain.boards.board_model import Emulator as Emulator
from toolchain.boards.board_model import Uart as Uart
from toolchain.boards.checked import checked as checked
from toolchain.boards.checked import header_of as header_of
from toolchain.boards.chip_model import Bank as Bank
from toolchain.boards.chip_model import BusTiming as BusTiming
from toolchain.boards.chip_model import Chip as Chip
from toolchain.boards.chip_model import Counter as Counter
from toolchain.boards.chip_model import Energy as Energy
from toolchain.boards.chip_model import Identity as Identity
from toolchain.boards.core import HOST as HOST
from toolchain.boards.core import Core as Core
from toolchain.boards.memory import GUARD_BYTES as GUARD_BYTES
from toolchain.boards.memory import Cache as Cache
from toolchain.boards.memory import Content as Content
from toolchain.boards.memory import Memory as Memory
from toolchain.boards.memory import MemoryKind as MemoryKind
from toolchain.boards.memory import MemoryTiming as MemoryTiming
from toolchain.boards.places import board_files_by_name as board_files_by_name
from toolchain.boards.places import user_folders as user_folders
from toolchain.boards.reading import boards as boards
from toolchain.boards.reading import chip as chip
from toolchain.boards.reading import chips as chips
from toolchain.boards.reading import invalid_boards as invalid_boards
from toolchain.boards.reading import read_board as read_board
from toolchain.boards.reading import read_chip as read_chip
from toolchain.boards.starting import starting_board as starting_board
from toolchain.boards.target import Target as Target
from toolchain.boards.target import as_target as as_target
from toolchain.boards.target import board as board
from toolchain.boards.target import board_files as board_files
from toolchain.boards.target import energy_of as energy_of
from toolchain.boards.target import stand_in as stand_in
