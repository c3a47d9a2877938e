# A server without engines: those of the headless hosts are all it has.
#   MODEL=.. MASTER_IP=.. data_parallel_api_only_node.sh [FLAGS]
exec octavo serve "$MODEL" \
  --data-parallel-size 2 \
  --data-parallel-size-local 0 \
  --data-parallel-address "$MASTER_IP" \
  --data-parallel-rpc-port "${RPC_PORT:-13345}" "$@"
