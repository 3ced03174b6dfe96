"""The laboratory: whole jobs as functions, each of a frozen request, that place a device, run, certify, measure and
leave a folder of files. What a command of `dashi` does, a function here does; commands only ask and print."""
