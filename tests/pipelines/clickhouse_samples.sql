-- Single samples, by the format clickhouse:
--   nhmtap stream -a -e page-faults -c 1 --format clickhouse |
--     clickhouse-client --input_format_skip_unknown_fields 1 --query 'INSERT INTO nhmtap_samples FORMAT Native'
-- Columns have the types of the blocks, since old servers convert none. What blocks have beside them is skipped.
CREATE TABLE IF NOT EXISTS nhmtap_samples
(
    `run_id` String,
    `seq` UInt64,
    `time_unix_ns` UInt64,
    `time_unix_ms` UInt64,
    `interval_ms` Float64,
    `host.name` String,
    `activity` String,
    `event` String,
    `nth` UInt32,
    `cpu` UInt32,
    `pid` UInt32,
    `tid` UInt32,
    `comm` String,
    `cgroup` String,
    `container.id` String,
    `container.runtime` String,
    `k8s.pod.uid` String,
    `systemd.unit` String,
    `ip` UInt64,
    `symbol` String,
    `module` String,
    `code_offset` UInt64,
    `code_address` UInt64,
    `code_build_id` String,
    `code_file` String,
    `code_line` UInt32,
    `stack` String,
    `stack_lost` String,
    `truncated` UInt8,
    `incomplete` String,
    `address` UInt64,
    `source` String,
    `latency` UInt64,
    `period` UInt64,
    `every` UInt32,
    `lost` String,
    `missed` UInt64,
    `value` Float64,
    `enabled_ns` UInt64,
    `running_ns` UInt64,
    `status` String,
    `why` String,
    `no_samples` String
)
-- Requests that come twice, with the same run and numbers, become one.
ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMM(toDateTime(intDiv(time_unix_ms, 1000)))
ORDER BY (run_id, seq)
