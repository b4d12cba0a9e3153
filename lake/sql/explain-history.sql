-- Which rows has a URL ($url_key) had, round by round, as far as they are kept?
SELECT * FROM seen WHERE url_key = $url_key ORDER BY round
