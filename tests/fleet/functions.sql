-- The functions in which the fleet's samples were taken, and on how many hosts.
SELECT symbol, module, sum(value) AS samples, uniqExact(`host.name`) AS hosts
FROM nhmtap FINAL
WHERE activity = 'code' AND lost = ''
GROUP BY symbol, module
ORDER BY samples DESC
LIMIT 20
