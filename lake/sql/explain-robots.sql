-- Which robots copies of a URL's origin ($origin) are kept?
SELECT * FROM robots WHERE origin = $origin ORDER BY round
