"""Rows that somebody wrote by hand take no page and no tick down; a backup deleted in plain SQL leaves its slot."""

import jobs.models.queue
from django.db import migrations, models

from jobs.migrations._foreign_keys import on_delete

# Python knows neither infinity nor years beyond 9999.
FINITE = """
UPDATE backup_schedules SET next_run_at = NULL WHERE next_run_at < '1970-01-01Z' OR next_run_at >= '9000-01-01Z';
ALTER TABLE backup_schedules ADD CONSTRAINT backup_schedules_next_run_at_is_a_time
    CHECK (next_run_at >= '1970-01-01Z' AND next_run_at < '9000-01-01Z');
"""
ANY = "ALTER TABLE backup_schedules DROP CONSTRAINT backup_schedules_next_run_at_is_a_time;"


class Migration(migrations.Migration):
    dependencies = [("schedules", "0004_pings_go_with_their_schedule"), ("jobs", "0007_retention_and_copies")]

    operations = [
        migrations.AlterField(
            model_name="schedule",
            name="flags",
            field=models.JSONField(blank=True, decoder=jobs.models.queue.Readable, default=dict),
        ),
        migrations.RunSQL(FINITE, ANY),
        on_delete("backup_schedule_skips", "backup_id", "backup_jobs", "SET NULL"),
    ]
