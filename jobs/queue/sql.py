"""Every raw statement of the queue. Times are the database's; every write about a job names its claim."""

# The CTE is MATERIALIZED so that LIMIT is a limit: as a plain subselect it may run once per candidate row
# and claim more than asked. SKIP LOCKED lets workers pass each other without waiting. One statement, no
# transaction around it: nothing stays open while the job runs.
CLAIM = """
WITH due AS MATERIALIZED (
    SELECT id
    FROM job_queue
    WHERE queue = %(queue)s AND status = 'pending' AND run_at <= now()
    ORDER BY run_at, created_at
    LIMIT %(slots)s
    FOR UPDATE SKIP LOCKED
), claimed AS (
    UPDATE job_queue AS job
    SET status = 'active',
        claim_id = gen_random_uuid(),
        locked_by = %(worker)s,
        locked_at = now(),
        heartbeat_at = now(),
        attempts = job.attempts + 1
    FROM due
    WHERE job.id = due.id
    RETURNING job.id, job.queue, job.user_id, job.payload, job.claim_id, job.attempts, job.max_attempts,
              job.stalls, job.schedule_id, job.slot, job.created_at, job.run_at
), line AS (
    INSERT INTO job_timeline (job_id, event, attempt, worker)
    SELECT id, 'claimed', attempts, %(worker)s FROM claimed
)
SELECT id, queue, user_id, payload, claim_id, attempts, max_attempts, stalls, schedule_id, slot, created_at
FROM claimed
ORDER BY run_at, created_at
"""

# A slot fires once: neither what waits or runs, nor what only the history remembers, is queued again.
ENQUEUE_BACKUPS = """
WITH planned AS MATERIALIZED (
    SELECT id, user_id, payload, schedule_id, slot
    FROM jsonb_to_recordset(%(planned)s::jsonb)
        AS row (id uuid, user_id integer, payload jsonb, schedule_id uuid, slot timestamptz)
), queued AS (
    INSERT INTO job_queue
        (id, queue, user_id, payload, status, attempts, max_attempts, stalls, schedule_id, slot)
    SELECT id, 'backup', user_id, payload, 'pending', 0, 1, 0, schedule_id, slot
    FROM planned
    WHERE NOT EXISTS (
        SELECT FROM backup_jobs AS history
        WHERE history.schedule_id = planned.schedule_id AND history.slot = planned.slot
    )
    ON CONFLICT (schedule_id, slot) DO NOTHING
    RETURNING id
), line AS (
    INSERT INTO job_timeline (job_id, event, attempt, detail)
    SELECT id, 'enqueued', 0, %(detail)s FROM queued
)
SELECT id FROM queued
"""

# One statement for all jobs of a process. A claim that does not come back is lost.
# Rows are locked in the order of their ids, so two processes that share rows cannot deadlock.
HEARTBEAT = """
WITH held AS MATERIALIZED (
    SELECT id
    FROM job_queue
    WHERE claim_id = ANY(%(claims)s) AND status = 'active'
    ORDER BY id
    FOR UPDATE
)
UPDATE job_queue AS job
SET heartbeat_at = now()
FROM held
WHERE job.id = held.id
RETURNING job.claim_id, job.cancel_requested_at IS NOT NULL AS cancelled
"""

# Whoever holds this lock holds the job: the row cannot change hands until the transaction ends. A status
# other than active means that the job has ended under this very claim: by its holder (the COMMIT got through,
# the answer did not) or by the reaper.
LOCK_HELD = """
SELECT status, cancel_requested_at IS NOT NULL AS cancelled
FROM job_queue
WHERE id = %(id)s AND claim_id = %(claim_id)s
FOR UPDATE
"""

FINISH = """
UPDATE job_queue
SET status = %(status)s, last_error = %(error)s, completed_at = now()
WHERE id = %(id)s AND claim_id = %(claim_id)s AND status = 'active'
"""

# Back to waiting. A refunded attempt is as if the job had not been tried.
PUT_BACK = """
UPDATE job_queue
SET status = 'pending',
    run_at = now() + make_interval(secs => %(delay)s),
    attempts = attempts - %(refund)s,
    stalls = stalls + %(stalled)s,
    last_error = %(reason)s,
    claim_id = NULL,
    locked_by = NULL,
    locked_at = NULL,
    heartbeat_at = NULL
WHERE id = %(id)s AND claim_id = %(claim_id)s AND status = 'active'
"""

# Jobs whose worker has not been heard of. A server that has just started was away itself: it waits one
# stale period, in which the healthy workers come back.
STALE = """
SELECT id, queue, user_id, payload, claim_id, attempts, max_attempts, stalls, schedule_id, slot, created_at,
       locked_by, cancel_requested_at IS NOT NULL AS cancelled,
       EXTRACT(EPOCH FROM now() - heartbeat_at)::float8 AS silent_for
FROM job_queue
WHERE status = 'active'
  AND heartbeat_at < now() - make_interval(secs => %(stale)s)
  AND pg_postmaster_start_time() < now() - make_interval(secs => %(stale)s)
ORDER BY heartbeat_at
LIMIT %(batch)s
FOR UPDATE SKIP LOCKED
"""

COUNT_STALL = """
UPDATE job_queue SET stalls = stalls + 1 WHERE id = %(id)s
"""

LOCK_UNFINISHED = """
SELECT id, queue, user_id, payload, claim_id, attempts, max_attempts, stalls, schedule_id, slot, created_at,
       status, locked_by
FROM job_queue
WHERE id = %(id)s AND status IN ('pending', 'active')
FOR UPDATE
"""

# What a process held that its supervisor has seen die.
HELD_BY = """
SELECT id, queue, user_id, payload, claim_id, attempts, max_attempts, stalls, schedule_id, slot, created_at,
       locked_by, cancel_requested_at IS NOT NULL AS cancelled
FROM job_queue
WHERE status = 'active' AND locked_by = %(worker)s
ORDER BY id
FOR UPDATE
"""

# What a claim gave to a process that never got the answer.
UNANSWERED = """
SELECT id, queue, user_id, payload, claim_id, attempts, max_attempts, stalls, schedule_id, slot, created_at
FROM job_queue
WHERE status = 'active' AND locked_by = %(worker)s AND claim_id <> ALL(%(known)s)
ORDER BY id
FOR UPDATE
"""

CANCEL_WAITING = """
UPDATE job_queue
SET status = 'cancelled', cancel_requested_at = now(), completed_at = now(), last_error = %(reason)s
WHERE id = %(id)s AND status = 'pending'
"""

REQUEST_CANCEL = """
UPDATE job_queue
SET cancel_requested_at = COALESCE(cancel_requested_at, now())
WHERE id = %(id)s AND status = 'active'
"""

# In batches and past locked rows, so that it neither blocks nor deadlocks with anyone.
PURGE = """
WITH old AS MATERIALIZED (
    SELECT id
    FROM job_queue
    WHERE completed_at < now() - make_interval(days => %(days)s)
    ORDER BY completed_at
    LIMIT %(batch)s
    FOR UPDATE SKIP LOCKED
)
DELETE FROM job_queue AS job USING old WHERE job.id = old.id
"""

NOTIFY = "SELECT pg_notify(%(channel)s, %(payload)s)"
