"""Files of other tools, recognised by their shape and read as sweep files of ours.

reading.py          the tool that a file belongs to
foreign.py          a foreign file as one of ours
writing.py          a sweep file as text
wandb.py            sweeps of Weights & Biases
wandb_parameter.py  one parameter of such a sweep
starter.py          job files of experiment-starter
submit_script.py    sbatch scripts that end in `python train.py $1`
list_text.py        texts in them that stand for lists
list_functions.py   functions that such a text may call
numpy_numbers.py    numbers of numpy's, computed without it
cloudl.py           hyperparameters.json of clouDL
cloudl_folder.py    a whole folder of clouDL, and its quick_start.sh
startup.py          its user_startup.sh
burst.py            scripts that start a VM by gcloud
machines.py         machines as keys of hostler.yaml
tasks/              tasks of SkyPilot, dstack, Kubeflow, docker-compose, W&B launch
array_script.py     job scripts of Slurm, and their arrays
stateful_set.py     pods of Kubernetes that train one model
shell.py            shell scripts as lists of commands
quoting.py          quotes and comments of a shell script
private.py          names and values that look like secrets
withheld.py         replaces secrets in a script by variables, wherever scripts hold them
"""
