"""The first visit to a board: what `thimble contact` asks of it, and the file that it sends home.

`run` goes through the steps of `steps/`, past failures; `visit` holds the board while it does.
`document` is what the file holds, `archive` the file, `page` the page in it, and `residuals` what
`thimble cost import` makes of it.
"""
