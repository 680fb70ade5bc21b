// Fills the arguments of a kernel. It follows the code of the kernel, which defines the types of its arguments.

#undef int
#undef float

namespace {



template <typename T>
void fill(wp::array_t<T>& a, void* data, int ndim, const int* shape, const int* strides) {
    a.data = static_cast<T*>(data);
    a.grad = nullptr;
    a.ndim = ndim;
    for (int k = 0; k < ndim; ++k) {
        a.shape.dims[k] = shape[k];
        a.strides[k] = strides[k];
    }
}

// An array in the working memory.
template <typename T, int N>
void working(wp::array_t<T>& a, char* at, const int (&shape)[N], const int (&strides)[N]) {
    fill(a, at, N, shape, strides);
}

// A constant array, whose entries T consist of entries S.
template <typename T, typename S, int N>
void table(wp::array_t<T>& a, const S* data, const int (&shape)[N], const int (&strides)[N]) {
    static_assert(sizeof(T) % sizeof(S) == 0, "the compiler lays out an entry of a table in another way");
    fill(a, const_cast<S*>(data), N, shape, strides);
}

template <typename T, int N>
void empty(wp::array_t<T>& a, const int (&shape)[N], const int (&strides)[N]) {
    fill(a, nullptr, N, shape, strides);
}

// Rows of force terms, which are structs of arrays in the working memory.
template <typename T>
void terms(wp::array_t<T>& a, char* at, int count) {
    const int shape[1] = {count}, strides[1] = {int(sizeof(T))};
    fill(a, at, 1, shape, strides);
    for (int k = 0; k < count; ++k)
        a.data[k] = T();
}

}  // namespace
