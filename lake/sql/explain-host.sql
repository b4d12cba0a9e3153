-- How is a URL's host ($host) doing?
SELECT * FROM host_health WHERE host = $host
