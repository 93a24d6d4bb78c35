"""Everything that a run needs on this machine, made once and shared.

prepare.py           all of it, in order; the `setup:` command
once.py              makes something exactly once per machine
manifest.py          checks a folder of the cache
command.py           runs a command of preparation
code.py              the code, and a copy for each run
unpack.py            unpacks an archive safely
python_env.py        the Python of a run
requirements.py      requirements as a name for an environment
packages.py          packages of an interpreter
data_dir.py          the folder of data; downloads
hub_files.py         files of a hub, hf://…
inputs.py            checkpoints and outputs of other runs
secrets.py           secrets of this worker's runs
secret_encodings.py  forms in which a secret may be printed
mask.py              hides secrets in output
"""
