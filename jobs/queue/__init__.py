"""The queue: why no job is lost and none runs twice.

Read in this order: `sql` (every statement), `claim`, `heartbeat`, `finish`, `reap`. A job is a row of
job_queue. A worker claims it (`active`, with a claim id that is never reused), says every 15 s that it is
alive, and ends it under that claim. Whoever is silent for 90 s loses the job to the reaper, which puts it
back; the silent one can write nothing about it any more, since its claim id no longer matches.
"""
