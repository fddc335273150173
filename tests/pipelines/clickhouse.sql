-- Rows of nhmtap's flat format. What a line has beside these columns is skipped:
--   nhmtap profile -a -I 10000 --format flat |
--     clickhouse-client --input_format_skip_unknown_fields 1 --query 'INSERT INTO nhmtap FORMAT JSONEachRow'
CREATE TABLE IF NOT EXISTS nhmtap
(
    `run_id` String,
    `seq` UInt64,
    `time_unix_ms` UInt64,
    `interval_ms` Float64,
    `host.name` String,
    `container.id` String,
    `cgroup` String,
    `activity` String,
    `event` String,
    `metric` String,
    `cpu` UInt32,
    `pid` UInt32,
    `comm` String,
    `symbol` String,
    `module` String,
    `lost` String,
    `missed` UInt64,
    `value` Float64,
    `total` UInt64
)
-- Lines that come twice, with the same run and number, become one row.
ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMM(toDateTime(intDiv(time_unix_ms, 1000)))
ORDER BY (run_id, seq)
