// Runs the kernels of cluster_kernel.cu on a processor: every thread of a cluster is a thread.
//
//   emulated FILE   reads sizes and inputs from FILE, as test_cluster_kernel.py writes it, writes FILE.out

#include <barrier>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>
using std::max;

#define EMULATED
#define __device__
#define __forceinline__ inline
struct float4 { float x, y, z, w; };
inline float __expf(float x) { return std::exp(x); }
inline float __ldg(const float* x) { return *x; }

struct Warp { std::barrier<> meet{32}; float a[32][4], b[32][2]; };
struct Block { std::vector<float> memory = std::vector<float>(60000); std::barrier<> meet{256}; Warp warps[8]; };
struct Group { std::vector<std::unique_ptr<Block>> blocks; std::barrier<> meet; Group(int n) : meet(256 * n) { for (int i = 0; i < n; ++i) blocks.emplace_back(new Block); } };
thread_local int thread_here, part_here, cluster_here;
thread_local Group* group_here;

#define THREAD thread_here
#define CLUSTER_OF_GRID cluster_here
#define SYNC_BLOCK() group_here->blocks[part_here]->meet.arrive_and_wait()
#define SHARED_MEMORY float* memory = group_here->blocks[part_here]->memory.data()
#define LAUNCHED void
int part_of_cluster() { return part_here; }
void sync_cluster() { group_here->meet.arrive_and_wait(); }
// An address elsewhere: the block in the high bits, the place in its memory in floats below.
unsigned elsewhere(const float* own, int part) {
  return (unsigned)part << 24 | (unsigned)(own - group_here->blocks[part_here]->memory.data());
}
float* there_at(unsigned there, int offset) { return group_here->blocks[there >> 24]->memory.data() + (there & 0xffffff) + offset; }
void give4(unsigned there, int offset, float4 v) { std::memcpy(there_at(there, offset), &v, 16); }
void give2(unsigned there, int offset, float one, float two) { float* at = there_at(there, offset); at[0] = one; at[1] = two; }
void fetch(const float*) {}
float rounded(float x) { return x; }
void product(float* sum, float a0, float a1, float a2, float a3, float b0, float b1) {
  int lane = thread_here % 32, group = lane / 4, member = lane % 4;
  Warp& warp = group_here->blocks[part_here]->warps[thread_here / 32];
  float mine[4] = {a0, a1, a2, a3};
  std::memcpy(warp.a[lane], mine, 16);
  warp.b[lane][0] = b0;
  warp.b[lane][1] = b1;
  warp.meet.arrive_and_wait();
  for (int i = 0; i < 4; ++i) {  // A and B as the instruction lays them out over the lanes
    int row = group + 8 * (i / 2), col = 2 * member + i % 2;
    for (int k = 0; k < 8; ++k)
      sum[i] += warp.a[row % 8 * 4 + k % 4][row / 8 + 2 * (k / 4)] * warp.b[col * 4 + k % 4][k / 4];
  }
  warp.meet.arrive_and_wait();
}

#include KERNELS

template <class Kernel> void launch(int clusters, Kernel kernel) {
  for (int cluster = 0; cluster < clusters; ++cluster) {
    Group group(PARTS);
    std::vector<std::thread> threads;
    for (int part = 0; part < PARTS; ++part)
      for (int thread = 0; thread < 256; ++thread)
        threads.emplace_back([&, part, thread] {
          thread_here = thread, part_here = part, cluster_here = cluster, group_here = &group;
          kernel();
        });
    for (auto& one : threads) one.join();
  }
}

int main(int, char** names) {
  FILE* file = std::fopen(names[1], "rb");
  int size[6];
  if (std::fread(size, 4, 6, file) != 6) return 1;
  auto [layers, tokens, documents, turned, is_ragged, is_started] = size;
  auto read = [&]<class Number>(std::vector<Number> found) {
    if (std::fread(found.data(), sizeof(Number), found.size(), file) != found.size()) std::exit(1);
    return found;
  };
  size_t rows = (size_t)layers * documents, all = (size_t)layers * tokens * DIM;
  auto first = read(std::vector<int>(is_ragged ? rows : 0)), count = read(std::vector<int>(is_ragged ? rows : 0));
  auto gates = read(std::vector<float>(4 * all)), hidden = read(std::vector<float>((size_t)layers * DIM * 4 * DIM));
  auto start = read(std::vector<float>(is_started ? 2 * rows * DIM : 0));
  auto of_states = read(std::vector<float>(all)), of_last = read(std::vector<float>(is_started ? rows * DIM : 0));
  fclose(file);
  std::vector<float> states(all), cells(all), opened(4 * all), of_gates(4 * all), of_start(start.size());
  auto given = [](auto& one) { return one.empty() ? nullptr : one.data(); };
  int clusters = layers * ((documents + 31) / 32);
  launch(clusters, [&] {
    walk_forward(gates.data(), hidden.data(), given(start), given(first), given(count), states.data(), cells.data(),
                 opened.data(), layers, tokens, documents, turned);
  });
  launch(clusters, [&] {
    walk_back(of_states.data(), given(of_last), hidden.data(), given(start), given(first), given(count), cells.data(),
              opened.data(), of_gates.data(), given(of_start), layers, tokens, documents, turned);
  });
  FILE* out = std::fopen((std::string(names[1]) + ".out").c_str(), "wb");
  for (auto* one : {&states, &cells, &of_gates, &of_start}) std::fwrite(one->data(), 4, one->size(), out);
  std::fclose(out);
}
