"""Many models, boards and options: tasks on many workers, their rows in one file.

`jobs`     what runs where: the dispatcher, which knows neither models nor machines
`local`    processes of this machine; `cluster`: the workers of a Dask cluster
`cases`    the combinations of a sweep, and the key of each
`work`     what a worker does for one case
`sweep`    the cases, those that are known, and the rest on workers
`store`    rows in SQLite: a sweep that was killed goes on from there
`changes`  rows beside those of the sweep before
`candidates`  RAM, flash and time of one graph, for a search among architectures
"""
