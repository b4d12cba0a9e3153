-- Which addresses were ever asked, and how often?
SELECT address, count(*) AS requests FROM fetches WHERE address IS NOT NULL GROUP BY address ORDER BY address
