# Engines 0 and 1 of four, each of two ranks, on a host without a server.
#   MODEL=.. MASTER_IP=.. data_parallel_headless_node.sh [FLAGS]
exec octavo serve "$MODEL" \
  --tensor-parallel-size 2 \
  --data-parallel-size 4 \
  --data-parallel-size-local 2 \
  --data-parallel-start-rank 0 \
  --data-parallel-address "$MASTER_IP" \
  --data-parallel-rpc-port "${RPC_PORT:-13345}" \
  --headless "$@"
