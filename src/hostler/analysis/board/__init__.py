"""The dashboard: a store in the browser, live. Files of the page are in `page/`.

serve.py        starts the dashboard: port, guard, server; bounds its connections
app.py          addresses of the web application and their handlers
pagefiles.py    files of the page, its modules joined: a first view in one answer
door.py         every request passes here first
guard.py        rules by which a request is let in
token.py        the token that opens a dashboard, and its file
watcher.py      one thread looks at the store for all open pages
live.py         runs of a store, kept up to date
shape.py        runs and sweeps as plain data for the page
replies.py      answers as JSON, failures included; rows on their way to a page
pages.py        answers for single pages: a run and its files, a comparison, errors, workers
curvebook.py    curves of runs, read on and thinned
searchdata.py   values of a search's runs and the importance of their parameters
logpage.py      a run's log: its end, new lines, search
deeds.py        stop, retry and tag, asked for by the page
"""
