-- The functions in which most samples were taken.
SELECT symbol, module, sum(value) AS samples
FROM nhmtap FINAL
WHERE activity = 'profile'
GROUP BY symbol, module
ORDER BY samples DESC
LIMIT 20
