// <%= it.name %>: what the input's zero point adds to every filter's sums.
<%= it.declarations %>

var<workgroup> total: atomic<i32>;

<%= it.main %>
  let row = workgroup.x + workgroup.y * grid.x;
  var sum = 0i;
  if (row < <%= it.rows %>) {
    for (var d = t; d < <%= it.depth %>; d += <%= it.threads %>u) {
      sum += <%= it.load %>;
    }
  }
  atomicAdd(&total, sum);
  workgroupBarrier();
  if (row < <%= it.rows %> && t == 0u) {
    let bias = <%= it.bias %>;
    let zero = <%= it.zeroPoint %>;
    <%= it.store %>
  }
}
