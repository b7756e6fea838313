"""Advice on changes of a network, measured: the finished plan of each changed graph.

`advising` joins the room; each file of `changes/` is one change, `surgery` lets shapes follow.
"""

from toolchain.advise.advising import Advice as Advice
from toolchain.advise.advising import Advised as Advised
from toolchain.advise.advising import advise_graph as advise_graph
from toolchain.advise.advising import advise_model as advise_model
from toolchain.advise.advising import changes as changes
