# Engines 2 and 3 of four, and the server of all of them.
#   MODEL=.. MASTER_IP=.. data_parallel_api_node.sh [FLAGS]
exec octavo serve "$MODEL" \
  --tensor-parallel-size 2 \
  --data-parallel-size 4 \
  --data-parallel-size-local 2 \
  --data-parallel-start-rank 2 \
  --data-parallel-address "$MASTER_IP" \
  --data-parallel-rpc-port "${RPC_PORT:-13345}" "$@"
