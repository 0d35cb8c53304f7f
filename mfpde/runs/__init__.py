"""Experiments from the command line: a configuration becomes a run folder; folders become sweeps, pages and films.

    config       words, TOML files and cases -> the resolved configuration, with the origin of every value
    output       when laws are kept and what is observed
    weights      W_Q, W_K, W_V from .npy and .npz files
    experiment   a configuration -> a run folder; run, resume, read, export
    sweep        many points of one configuration, on dask.distributed
    summary      what a run prints and draws; report, animation: pages and films of a run folder
    runfile      the text of run files, and checking what was read
"""
