// An LSTM over documents of their own lengths, one after the other without padding.
//
// A cluster of DIM / 32 blocks walks through up to 32 documents of one layer. Each block keeps the
// weights of 32 states in registers, as TF32, so a step reads nothing but its gates; states (forward)
// and gradients (back) go from block to block through shared memory. See cluster_kernel.py.
//
// Blocks have 8 warps. In a product of a warp, lane = 4 * group + member (m16n8k8).

#define PARTS (DIM / 32)  // blocks of a cluster

#ifndef EMULATED
#define THREAD threadIdx.x
#define CLUSTER_OF_GRID (blockIdx.x / PARTS)
#define SYNC_BLOCK() __syncthreads()
#define SHARED_MEMORY extern __shared__ float4 shared_memory[]; float* memory = (float*)shared_memory
#define CLUSTER __cluster_dims__(PARTS, 1, 1)
#define LAUNCHED extern "C" __global__ void __launch_bounds__(256, 1) CLUSTER

__device__ __forceinline__ int part_of_cluster() {
  unsigned rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return (int)rank;
}

__device__ __forceinline__ void sync_cluster() {
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// Where the same place of shared memory lies in another block of the cluster.
__device__ __forceinline__ unsigned elsewhere(const float* own, int part) {
  unsigned here, there;
  asm volatile("{ .reg .u64 wide; cvta.to.shared.u64 wide, %1; cvt.u32.u64 %0, wide; }"
               : "=r"(here) : "l"(own));
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(here), "r"(part));
  return there;
}

__device__ __forceinline__ void give4(unsigned there, int offset, float4 v) {
  asm volatile("st.shared::cluster.v4.f32 [%0], {%1, %2, %3, %4};"
               :: "r"(there + 4 * offset), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w) : "memory");
}

__device__ __forceinline__ void give2(unsigned there, int offset, float one, float two) {
  asm volatile("st.shared::cluster.v2.f32 [%0], {%1, %2};"
               :: "r"(there + 4 * offset), "f"(one), "f"(two) : "memory");
}

// Reads ahead: what the next step needs comes from the card's memory while this one is computed.
__device__ __forceinline__ void fetch(const float* where) {
  asm volatile("prefetch.global.L2 [%0];" :: "l"(where));
}

__device__ __forceinline__ float rounded(float x) {
  unsigned bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
  return __uint_as_float(bits);
}

__device__ __forceinline__ void product(float* sum, float a0, float a1, float a2, float a3, float b0, float b1) {
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
               : "r"(__float_as_uint(a0)), "r"(__float_as_uint(a1)), "r"(__float_as_uint(a2)), "r"(__float_as_uint(a3)),
                 "r"(__float_as_uint(b0)), "r"(__float_as_uint(b1)));
}
#endif


#define CHUNKS (DIM / 16)   // of the inner axis, forward
#define WIDE (DIM + 16)     // floats from one document's states to the next: no bank twice
#define DEEP (128 + 16)     // the same for a block's gradients of gates
#define SENT 36             // and for what a block is sent
#define ROWS 32

__device__ __forceinline__ float opened_gate(float x) { return 1.0f / (1.0f + __expf(-x)); }
__device__ __forceinline__ float squashed(float x) { return 2.0f / (1.0f + __expf(-2.0f * x)) - 1.0f; }

// gates [layer token 4 DIM], hidden [layer DIM 4 DIM], first and count [layer document] of tokens.
// Without counts all documents have as many tokens. Layers from `turned` on read theirs backwards.
// start, state and cell [2 layer document DIM], may be nothing: zeros. Fills states, cells, opened.
LAUNCHED walk_forward(
    const float* gates, const float* hidden, const float* start, const int* first, const int* count,
    float* states, float* cells, float* opened, int layers, int tokens, int documents, int turned)
{
  SHARED_MEMORY;  // two times the states of all documents, then the block's own new ones
  float* own = memory + 2 * ROWS * WIDE;
  int part = part_of_cluster(), lane = THREAD % 32, warp = THREAD / 32;
  int group = lane / 4, member = lane % 4;
  int blocks = (documents + ROWS - 1) / ROWS;
  int layer = CLUSTER_OF_GRID / blocks, begin = CLUSTER_OF_GRID % blocks * ROWS;
  const long long at = (long long)layer * tokens;
  const float* read = gates + at * (4 * DIM);
  hidden += (long long)layer * DIM * 4 * DIM;
  int unit = 32 * part + 4 * warp + member;  // the state that this thread computes, of four documents
  float weight[CHUNKS][2][2][2];  // chunk, product, gates in / keep and new / out, inner pair
#pragma unroll
  for (int chunk = 0; chunk < CHUNKS; ++chunk)
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
      for (int pair = 0; pair < 2; ++pair)
#pragma unroll
        for (int inner = 0; inner < 2; ++inner)
          weight[chunk][half][pair][inner] = rounded(
              hidden[(16 * chunk + 4 * member + 2 * half + inner) * (4 * DIM)
                     + (2 * pair + group % 2) * DIM + 32 * part + 4 * warp + group / 2]);
  int row[4], place[4], length[4], longest = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    int document = begin + group + 8 * i;
    bool is_one = document < documents;
    row[i] = is_one ? layer * documents + document : -1;
    place[i] = !is_one ? 0 : count ? first[row[i]] : document * (tokens / documents);
    length[i] = !is_one ? 0 : count ? count[row[i]] : tokens / documents;
  }
  for (int document = begin; document < documents && document < begin + ROWS; ++document)
    longest = max(longest, count ? count[layer * documents + document] : tokens / documents);
  bool is_turned = layer >= turned;
  for (int i = THREAD; i < 2 * ROWS * WIDE; i += 256) memory[i] = 0.0f;
  float cell[4] = {0.0f, 0.0f, 0.0f, 0.0f};
  unsigned peer = warp < PARTS ? elsewhere(memory, warp) : 0;
  SYNC_BLOCK();
  if (start) {
    for (int i = THREAD; i < ROWS * DIM; i += 256)
      if (begin + i / DIM < documents)
        memory[i / DIM * WIDE + i % DIM] =
            rounded(start[(long long)(layer * documents + begin) * DIM + i]);
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if (row[i] >= 0) cell[i] = start[((long long)layers * documents + row[i]) * DIM + unit];
  }
  sync_cluster();
  for (int step = 0; step < longest; ++step) {
    const float* before = memory + step % 2 * ROWS * WIDE;
    long long token[4];
    float entering[4][4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      token[i] = step < length[i] ? place[i] + (is_turned ? length[i] - 1 - step : step) : -1;
#pragma unroll
      for (int gate = 0; gate < 4; ++gate)
        entering[i][gate] = token[i] < 0 ? 0.0f : __ldg(read + token[i] * (4 * DIM) + gate * DIM + unit);
    }
    float sum[2][2][4] = {};  // documents 0-15 and 16-31, pairs of gates
#pragma unroll
    for (int chunk = 0; chunk < CHUNKS; ++chunk) {
      float4 state[4];
#pragma unroll
      for (int i = 0; i < 4; ++i)
        state[i] = *(const float4*)(before + (group + 8 * i) * WIDE + 16 * chunk + 4 * member);
#pragma unroll
      for (int side = 0; side < 2; ++side)
#pragma unroll
        for (int pair = 0; pair < 2; ++pair) {
          float4 top = state[2 * side], low = state[2 * side + 1];
          product(sum[side][pair], top.x, low.x, top.y, low.y, weight[chunk][0][pair][0], weight[chunk][0][pair][1]);
          product(sum[side][pair], top.z, low.z, top.w, low.w, weight[chunk][1][pair][0], weight[chunk][1][pair][1]);
        }
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float* in_keep = sum[i / 2][0] + 2 * (i % 2);
      const float* new_out = sum[i / 2][1] + 2 * (i % 2);
      float in = opened_gate(entering[i][0] + in_keep[0]), keep = opened_gate(entering[i][1] + in_keep[1]);
      float fresh = squashed(entering[i][2] + new_out[0]), out = opened_gate(entering[i][3] + new_out[1]);
      cell[i] = keep * cell[i] + in * fresh;
      float state = out * squashed(cell[i]);
      own[(group + 8 * i) * 32 + 4 * warp + member] = rounded(state);
      if (token[i] >= 0) {
        long long here = at + token[i];
        states[here * DIM + unit] = state;
        cells[here * DIM + unit] = cell[i];
        opened[here * (4 * DIM) + unit] = in;
        opened[here * (4 * DIM) + DIM + unit] = keep;
        opened[here * (4 * DIM) + 2 * DIM + unit] = fresh;
        opened[here * (4 * DIM) + 3 * DIM + unit] = out;
      }
    }
    SYNC_BLOCK();
    if (warp < PARTS)  // each warp gives the block's new states to one block
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        int line = 4 * i + lane / 8, col = lane % 8 * 4;
        give4(peer, (step + 1) % 2 * ROWS * WIDE + line * WIDE + 32 * part + col,
              *(const float4*)(own + line * 32 + col));
      }
    sync_cluster();
  }
}

// What the gradients of the states, and of_last of the last cells (or nothing), say of the gates and
// of the start, where that is asked for; reads what the forward walk filled.
LAUNCHED walk_back(
    const float* of_states, const float* of_last, const float* hidden, const float* start,
    const int* first, const int* count, const float* cells, const float* opened,
    float* of_gates, float* of_start, int layers, int tokens, int documents, int turned)
{
  SHARED_MEMORY;  // two times what every block sent, then the block's own gradients of gates
  float* own = memory + 2 * PARTS * ROWS * SENT;
  int part = part_of_cluster(), lane = THREAD % 32, warp = THREAD / 32;
  int group = lane / 4, member = lane % 4;
  int blocks = (documents + ROWS - 1) / ROWS;
  int layer = CLUSTER_OF_GRID / blocks, begin = CLUSTER_OF_GRID % blocks * ROWS;
  const long long at = (long long)layer * tokens;
  hidden += (long long)layer * DIM * 4 * DIM;
  int unit = 32 * part + 4 * warp + member;
  float weight[8][2][4][2];  // chunk of the block's own gates, product, states of 8, inner pair
  if (warp < PARTS)
#pragma unroll
    for (int chunk = 0; chunk < 8; ++chunk)
#pragma unroll
      for (int half = 0; half < 2; ++half)
#pragma unroll
        for (int eight = 0; eight < 4; ++eight)
#pragma unroll
          for (int inner = 0; inner < 2; ++inner)
            weight[chunk][half][eight][inner] = rounded(
                hidden[(32 * warp + 8 * eight + group) * (4 * DIM)
                       + (2 * half + inner) * DIM + 32 * part + 4 * chunk + member]);
  int row[4], place[4], length[4], longest = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    int document = begin + group + 8 * i;
    bool is_one = document < documents;
    row[i] = is_one ? layer * documents + document : -1;
    place[i] = !is_one ? 0 : count ? first[row[i]] : document * (tokens / documents);
    length[i] = !is_one ? 0 : count ? count[row[i]] : tokens / documents;
  }
  for (int document = begin; document < documents && document < begin + ROWS; ++document)
    longest = max(longest, count ? count[layer * documents + document] : tokens / documents);
  bool is_turned = layer >= turned;
  for (int i = THREAD; i < 2 * PARTS * ROWS * SENT; i += 256) memory[i] = 0.0f;
  float of_cell[4] = {0.0f, 0.0f, 0.0f, 0.0f};
  if (of_last)
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if (row[i] >= 0) of_cell[i] = of_last[(long long)row[i] * DIM + unit];
  unsigned peer = warp < PARTS ? elsewhere(memory, warp) : 0;
  sync_cluster();
  for (int step = longest - 1; step >= 0; --step) {
    const float* given = memory + step % 2 * PARTS * ROWS * SENT;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      int line = group + 8 * i;
      float4 of_gate = {0.0f, 0.0f, 0.0f, 0.0f};
      if (step < length[i]) {
        long long here = at + place[i] + (is_turned ? length[i] - 1 - step : step);
        long long earlier = here + (is_turned ? 1 : -1);
        float in = opened[here * (4 * DIM) + unit], keep = opened[here * (4 * DIM) + DIM + unit];
        float fresh = opened[here * (4 * DIM) + 2 * DIM + unit], out = opened[here * (4 * DIM) + 3 * DIM + unit];
        float now = squashed(cells[here * DIM + unit]);
        float before = step ? cells[earlier * DIM + unit]
                       : start ? start[((long long)layers * documents + row[i]) * DIM + unit] : 0.0f;
        float of_state = of_states[here * DIM + unit];
#pragma unroll
        for (int source = 0; source < PARTS; ++source)
          of_state += given[(source * ROWS + line) * SENT + 4 * warp + member];
        float of_now = of_cell[i] + of_state * out * (1.0f - now * now);
        of_gate.x = of_now * fresh * in * (1.0f - in);
        of_gate.y = of_now * before * keep * (1.0f - keep);
        of_gate.z = of_now * in * (1.0f - fresh * fresh);
        of_gate.w = of_state * now * out * (1.0f - out);
        of_cell[i] = of_now * keep;
        of_gates[here * (4 * DIM) + unit] = of_gate.x;
        of_gates[here * (4 * DIM) + DIM + unit] = of_gate.y;
        of_gates[here * (4 * DIM) + 2 * DIM + unit] = of_gate.z;
        of_gates[here * (4 * DIM) + 3 * DIM + unit] = of_gate.w;
      }
      of_gate.x = rounded(of_gate.x);
      of_gate.y = rounded(of_gate.y);
      of_gate.z = rounded(of_gate.z);
      of_gate.w = rounded(of_gate.w);
      *(float4*)(own + line * DEEP + 4 * (4 * warp + member)) = of_gate;
    }
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if (step && step <= length[i]) {
        long long next = at + place[i] + (is_turned ? length[i] - step : step - 1);
        for (int gate = 0; gate < 4; ++gate) fetch(opened + next * (4 * DIM) + gate * DIM + unit);
        fetch(of_states + next * DIM + unit);
        if (step > 1) fetch(cells + (next + (is_turned ? 1 : -1)) * DIM + unit);
      }
    SYNC_BLOCK();
    if (warp < PARTS) {  // each warp computes what the states of one block are told
      float sum[2][4][4] = {};
#pragma unroll
      for (int chunk = 0; chunk < 8; ++chunk) {
        float4 gate[4];
#pragma unroll
        for (int i = 0; i < 4; ++i)
          gate[i] = *(const float4*)(own + (group + 8 * i) * DEEP + 16 * chunk + 4 * member);
#pragma unroll
        for (int side = 0; side < 2; ++side)
#pragma unroll
          for (int eight = 0; eight < 4; ++eight) {
            float4 top = gate[2 * side], low = gate[2 * side + 1];
            product(sum[side][eight], top.x, low.x, top.y, low.y, weight[chunk][0][eight][0], weight[chunk][0][eight][1]);
            product(sum[side][eight], top.z, low.z, top.w, low.w, weight[chunk][1][eight][0], weight[chunk][1][eight][1]);
          }
      }
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int eight = 0; eight < 4; ++eight)
          give2(peer, (((step + 1) % 2 * PARTS + part) * ROWS + group + 8 * i) * SENT + 8 * eight + 2 * member,
                sum[i / 2][eight][2 * (i % 2)], sum[i / 2][eight][2 * (i % 2) + 1]);
    }
    sync_cluster();
  }
  if (of_start) {
    const float* given = memory + PARTS * ROWS * SENT;  // sent in step 0
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if (row[i] >= 0) {
        float of_state = 0.0f;
#pragma unroll
        for (int source = 0; source < PARTS; ++source)
          of_state += given[(source * ROWS + group + 8 * i) * SENT + 4 * warp + member];
        of_start[(long long)row[i] * DIM + unit] = of_state;
        of_start[((long long)layers * documents + row[i]) * DIM + unit] = of_cell[i];
      }
  }
}
