# What a user of HBox runs in both roles of a LightLDA job.
set -e
mkdir -p output
if [ "$LIGHTLDA_ROLE" = ps ]; then
	python3 multiverso_server -serverid "$LIGHTLDA_RANK" -workers "$LIGHTLDA_WORKER_NUM" -endpoint "$LIGHTLDA_SERVER_ENDPOINT"
	mv server_*.model output
else
	test "$LIGHTLDA_SERVER_ENDPOINT" = null
	cmp lightLdaEndPoints.txt lightLDAEndPoints.txt
	python3 lightlda -server_file lightLdaEndPoints.txt -num_servers "$LIGHTLDA_SERVER_NUM" -num_topics 2 \
		-num_iterations 20 -input_dir data
	mv doc_topic.* output
fi
